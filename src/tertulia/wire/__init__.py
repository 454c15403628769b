"""The HTTP interface. Only this package knows the API's names."""
