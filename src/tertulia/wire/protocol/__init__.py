"""HTTP/1.1 connections: limits, polls that wait below the application, and load shedding."""
