"""Small to large: a large GPU predicted from two small ones of the same proportions."""
