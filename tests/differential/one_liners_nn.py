"""Programs of `paddle.nn.functional`; see `one_liners`."""

from __future__ import annotations

SINGLE = "Paddle computes positions in single precision."

PROGRAMS: dict[str, str] = {
    # ------------------------------------------------------------------- convolution
    "nn.functional.conv1d": "F.conv1d(seq, paddle.cos(seq[:1, :, :3]).tile([6, 1, 1]), v.tile([2]), padding=1)",
    "nn.functional.conv1d strided": "F.conv1d(seq, seq[:, :2, :3], stride=2, padding=[2, 1], groups=2)",
    "nn.functional.conv1d last": "F.conv1d(seq.transpose([0, 2, 1]), seq[:, :, 1:4], data_format='NLC', dilation=2)",
    "nn.functional.conv2d": "F.conv2d(img, paddle.sin(img[:, :, :3, :3]), w[:2], padding=1)",
    "nn.functional.conv2d strided": "F.conv2d(img, img[:, :, 1:4, :2], stride=[2, 1], padding=[1, 0], dilation=[1, 2])",
    "nn.functional.conv2d same": "F.conv2d(img, img[:, :2, :3, 1:3], padding='SAME', stride=2, groups=2)",
    "nn.functional.conv2d valid": "F.conv2d(img, img[:, :, :3, 1:3], padding='VALID')",
    "nn.functional.conv2d pads": "F.conv2d(img, img[:, :, :3, 1:3], padding=[[0, 0], [0, 0], [1, 2], [0, 1]])",
    "nn.functional.conv2d depthwise": "F.conv2d(img, img[0, :, :3, :3].unsqueeze(1), padding=1, groups=4)",
    "nn.functional.conv2d last": "F.conv2d(img.transpose([0, 2, 3, 1]), img[:, :, :2, :2], v[:2], data_format='NHWC', padding=[1, 2, 0, 1])",
    "nn.functional.conv2d raises": "F.conv2d(img, img[:, :3, :2, :2])",
    "nn.functional.conv3d": "F.conv3d(vol, paddle.sin(vol[:, :, :2, :3, :2]), padding=1, stride=[1, 2, 1])",
    "nn.functional.conv1d_transpose": "F.conv1d_transpose(seq, seq[0, :, :3].unsqueeze(1), stride=2, padding=1, output_padding=1)",
    "nn.functional.conv2d_transpose": "F.conv2d_transpose(img, paddle.sin(img[0, :, :3, :2]).unsqueeze(1), s.reshape([1]), stride=2, padding=1)",
    "nn.functional.conv2d_transpose groups": "F.conv2d_transpose(img, img[0, :, :3, :3].unsqueeze(1), groups=2, dilation=2)",
    "nn.functional.conv2d_transpose size": "F.conv2d_transpose(img, img[0, :, :3, :3].unsqueeze(1), stride=2, output_size=[14, 12])",
    "nn.functional.conv2d_transpose last": "F.conv2d_transpose(img.transpose([0, 2, 3, 1]), img[0, :, :2, :3].unsqueeze(1), data_format='NHWC')",
    "nn.functional.conv3d_transpose": "F.conv3d_transpose(vol, vol[0, :, :2, :2, :2].unsqueeze(1), stride=2)",
    # ------------------------------------------------------------------- pooling
    "nn.functional.max_pool1d": "F.max_pool1d(seq, 3, 2, 1)",
    "nn.functional.max_pool1d mask": "F.max_pool1d(seq, 2, return_mask=True)",
    "nn.functional.max_pool2d": "F.max_pool2d(img, 2)",
    "nn.functional.max_pool2d padded": "F.max_pool2d(img, [3, 2], stride=[1, 2], padding=[1, 0], ceil_mode=True)",
    "nn.functional.max_pool2d mask": "F.max_pool2d(img, 2, return_mask=True)",
    "nn.functional.max_pool2d last": "F.max_pool2d(img.transpose([0, 2, 3, 1]), 2, data_format='NHWC')",
    "nn.functional.max_pool2d ties": "F.max_pool2d(paddle.round(img * 2), 3, 1)",
    "nn.functional.max_pool3d": "F.max_pool3d(vol, 2, 2, 1)",
    "nn.functional.avg_pool1d": "F.avg_pool1d(seq, 3, 2, 1)",
    "nn.functional.avg_pool1d inclusive": "F.avg_pool1d(seq, 3, 2, 1, exclusive=False)",
    "nn.functional.avg_pool2d": "F.avg_pool2d(img, 2)",
    "nn.functional.avg_pool2d padded": "F.avg_pool2d(img, 3, 2, 1)",
    "nn.functional.avg_pool2d inclusive": "F.avg_pool2d(img, 3, 2, 1, exclusive=False)",
    "nn.functional.avg_pool2d ceil": "F.avg_pool2d(img, 3, 2, ceil_mode=True)",
    "nn.functional.avg_pool2d ceil inclusive": "F.avg_pool2d(img, 3, 2, 1, ceil_mode=True, exclusive=False)",
    "nn.functional.avg_pool2d divisor": "F.avg_pool2d(img, 3, 2, 1, divisor_override=5)",
    "nn.functional.avg_pool2d last": "F.avg_pool2d(img.transpose([0, 2, 3, 1]), 2, data_format='NHWC')",
    "nn.functional.avg_pool3d": "F.avg_pool3d(vol, 2, 1, 1)",
    "nn.functional.adaptive_avg_pool1d": "F.adaptive_avg_pool1d(seq, 3)",
    "nn.functional.adaptive_avg_pool2d": "F.adaptive_avg_pool2d(img, [4, 2])",
    "nn.functional.adaptive_avg_pool2d kept": "F.adaptive_avg_pool2d(img, [None, 2])",
    "nn.functional.adaptive_avg_pool3d": "F.adaptive_avg_pool3d(vol, [2, 3, 1])",
    "nn.functional.adaptive_max_pool1d": "F.adaptive_max_pool1d(seq, 3)",
    "nn.functional.adaptive_max_pool2d": "F.adaptive_max_pool2d(img, [4, 2])",
    "nn.functional.adaptive_max_pool2d mask": "F.adaptive_max_pool2d(img, [4, 2], return_mask=True)",
    "nn.functional.adaptive_max_pool3d": "F.adaptive_max_pool3d(vol, 2)",
    # ------------------------------------------------------------------- resampling
    "nn.functional.unfold": "F.unfold(img, 3, 1, 1)",
    "nn.functional.unfold sizes": "F.unfold(img, [2, 3], [2, 1], [1, 0, 0, 2], [1, 2])",
    "nn.functional.fold": "F.fold(F.unfold(img, 3, 2, 1) * 2, [6, 5], 3, 2, 1)",
    "nn.functional.pixel_shuffle": "F.pixel_shuffle(img, 2)",
    "nn.functional.pixel_unshuffle": "F.pixel_unshuffle(img[:, :, :, :4], 2)",
    # ------------------------------------------------------------------- normalisation and attention
    "nn.functional.batch_norm": "r = paddle.zeros([4], 'float64'); q = paddle.ones([4], 'float64')\nout = [F.batch_norm(img, r, q, seq[0, :, 0], seq[1, :, 1], training=True), r, q]",
    "nn.functional.batch_norm evaluated": "F.batch_norm(seq, img[0, :, 0, 0].detach(), p.reshape([-1])[:4].detach() + 1, seq[0, :, 0], seq[1, :, 1])",
    "nn.functional.batch_norm last": "F.batch_norm(seq, paddle.zeros([7], 'float64'), paddle.ones([7], 'float64'), seq[0, 0], seq[0, 1], training=True, data_format='NLC')",
    "nn.functional.group_norm": "F.group_norm(img, 2, weight=seq[0, :, 0], bias=seq[1, :, 1])",
    "nn.functional.instance_norm": "F.instance_norm(img, weight=seq[0, :, 0], bias=seq[1, :, 1])",
    "nn.functional.rms_norm": "F.rms_norm(x, [3], v)",
    "nn.functional.scaled_dot_product_attention": "F.scaled_dot_product_attention(img, img * 2, paddle.sin(img))",
    "nn.functional.scaled_dot_product_attention causal": "F.scaled_dot_product_attention(img, img * 2, paddle.sin(img), is_causal=True)",
    "nn.functional.scaled_dot_product_attention mask": "F.scaled_dot_product_attention(img, img, img, attn_mask=seq[0, :, :4].detach())",
    "nn.functional.embedding max_norm": "t = (m * 1.0).detach(); out = [F.embedding(k[:2], t, max_norm=1.0), t]",
    "nn.functional.embedding": "F.embedding(k, m, padding_idx=0)",
    # ------------------------------------------------------------------- activations
    "nn.functional.hardshrink": "F.hardshrink(x)", "nn.functional.softshrink": "F.softshrink(x, 0.25)",
    "nn.functional.gumbel_softmax": "h = F.gumbel_softmax(x, hard=True).detach(); out = [h.sum(-1), ((h == 0) | (h == 1)).all()]",
    "nn.functional.swiglu": "F.swiglu(x, y)", "nn.functional.swiglu halves": "F.swiglu(seq.transpose([0, 2, 1]))",
    "nn.functional.sequence_mask": "F.sequence_mask(i)", "nn.functional.sequence_mask dtype": "F.sequence_mask(k, 5, 'float64')",
    "nn.functional.hardtanh_": "t = x * 3; F.hardtanh_(t); out = t", "nn.functional.softmax_": "t = x * 3; F.softmax_(t); out = t",
    # ------------------------------------------------------------------- losses
    "nn.functional.square_error_cost": "F.square_error_cost(x, y)", "nn.functional.log_loss": "F.log_loss(f[:, :1].abs() / 4, paddle.to_tensor([[1.0], [0.0]]))", "nn.functional.dice_loss": "F.dice_loss(F.softmax(x), paddle.to_tensor([[1], [2]]))",
    "nn.functional.sigmoid_focal_loss": "F.sigmoid_focal_loss(x, b.astype('float64'))", "nn.functional.sigmoid_focal_loss mean": "F.sigmoid_focal_loss(x, b.astype('float64'), paddle.to_tensor([2.0], 'float64'), 0.5, 1.5, 'mean')",
    "nn.functional.margin_ranking_loss": "F.margin_ranking_loss(x, y, b.astype('float64') * 2 - 1, 0.25)", "nn.functional.hinge_embedding_loss": "F.hinge_embedding_loss(x, b.astype('float64') * 2 - 1)", "nn.functional.cosine_embedding_loss": "F.cosine_embedding_loss(x, y, paddle.to_tensor([1, -1]), 0.1)",
    "nn.functional.pairwise_distance": "F.pairwise_distance(x, y)", "nn.functional.triplet_margin_loss": "F.triplet_margin_loss(x, y, p)", "nn.functional.triplet_margin_loss swap": "F.triplet_margin_loss(x, y, x * 2, swap=True, reduction='none')", "nn.functional.triplet_margin_with_distance_loss": "F.triplet_margin_with_distance_loss(x, y, p, lambda a, b: ((a - b) ** 2).sum(-1))",
    "nn.functional.poisson_nll_loss": "F.poisson_nll_loss(x, p.detach())", "nn.functional.poisson_nll_loss full": "F.poisson_nll_loss(p, p.detach() * 2, log_input=False, full=True, reduction='sum')", "nn.functional.gaussian_nll_loss": "F.gaussian_nll_loss(x, y.detach(), p)", "nn.functional.gaussian_nll_loss full": "F.gaussian_nll_loss(x, y.detach(), p, full=True, reduction='none')",
    "nn.functional.soft_margin_loss": "F.soft_margin_loss(x, b.astype('float64') * 2 - 1)",
    "nn.functional.softmax_with_cross_entropy": "F.softmax_with_cross_entropy(x, paddle.to_tensor([[1], [2]]))", "nn.functional.softmax_with_cross_entropy pair": "l, r = F.softmax_with_cross_entropy(x, F.softmax(y).detach(), soft_label=True, return_softmax=True)\nout = [l, r.detach()]",
    "nn.functional.label_smooth": "F.label_smooth(F.one_hot(k, 3))", "nn.functional.label_smooth prior": "F.label_smooth(x, p[:1].detach(), 0.25)",
}  # fmt: skip

POSITIONS = "An integer result has no gradient; Paddle marks it as if it had."
FLAGS = r"out\[1\] (stop_gradient|is_leaf|repr)"

DIFFERS: dict[str, tuple[str, str]] = {
    "nn.functional.batch_norm": (r".* value", "Paddle keeps the momentum in single precision."),
    **{f"nn.functional.{name}": (r"gradient 4 .*", "Paddle gives the variance no gradient; the engine differentiates in all inputs.") for name in ("gaussian_nll_loss", "gaussian_nll_loss full")},
    "nn.functional.rms_norm": ("error", "Paddle's CPU build has no kernel."),
    **{f"nn.functional.{name}": (r".* value", "Paddle divides, or takes powers, in single precision.") for name in (
        "avg_pool1d", "avg_pool1d inclusive", "avg_pool2d padded", "avg_pool2d inclusive", "avg_pool2d ceil", "avg_pool2d ceil inclusive",
        "avg_pool2d divisor", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool2d kept", "adaptive_avg_pool3d",
    )},
    **{f"nn.functional.{name}": (FLAGS, POSITIONS) for name in ("max_pool1d mask", "max_pool2d mask", "adaptive_max_pool2d mask")},
}  # fmt: skip
