"""What training takes on each GPU: weights, gradients, optimiser state and activations, also of adapters alone."""
