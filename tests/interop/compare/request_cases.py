def compare_all(only, expected, results):
    pass
