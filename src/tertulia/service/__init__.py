"""What can be done with an organization, without HTTP: used by the API, the jobs, and the command
line."""
