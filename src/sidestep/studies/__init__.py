"""The live side: durable ask and tell, in the user's units, on a record that only ever grows."""
