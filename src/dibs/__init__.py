"""dibs: N machines search one space together, through nothing but a folder they all mounted."""
