"""Sign-in with identity providers: each ends in a `ProvenIdentity`."""
