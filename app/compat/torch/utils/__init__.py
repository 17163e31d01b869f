"""torch.utils"""
