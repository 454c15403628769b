"""Uses of the organization without HTTP, shared by the interface, the jobs and the command line."""
