"""torch.nn"""
