"""What is known of a program: call graph, dataflow, scopes, what statements cost."""
