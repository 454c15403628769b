"""The database: tables, queries, and migrations, on SQLite or PostgreSQL behind one interface."""
