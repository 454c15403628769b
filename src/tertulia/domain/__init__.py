"""The actions in an organization, one module for each noun. A verb checks everything that can
be refused, then returns changes."""
