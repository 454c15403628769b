"""Operations on an organization without HTTP, used by the API, the jobs, and the command line."""
