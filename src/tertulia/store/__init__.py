"""The database: tables, queries, migrations; SQLite or PostgreSQL, which nothing above can tell."""
