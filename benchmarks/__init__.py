"""Scripts that measure the plugin itself; README.md lists them."""
