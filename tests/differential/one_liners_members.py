"""Programs of what layers take, hold and are made with: keywords, containers, hooks, padding; see `one_liners`."""

from __future__ import annotations

_NET = """
class DemoNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.one = paddle.nn.Linear(3, 3)
        self.two = paddle.nn.Sequential(self.one, paddle.nn.ReLU())
        self.register_buffer("kept", paddle.ones([1]))
        self.loose = paddle.zeros([2])
    def forward(self, x, scale=1.0):
        return self.two(x) * scale
net = DemoNet()
for p in net.parameters():
    p.set_value(paddle.full(p.shape, 0.25))
b = paddle.to_tensor([[1.0, -2.0, 3.0]])
"""


def _spelled() -> dict[str, str]:
    rows = {f"nn.Conv{n}d": f"nn.Conv{n}D" for n in (1, 2, 3)}
    rows |= {"nn.SiLU": "nn.Silu", "nn.ModuleList": "nn.LayerList"}
    return {name: f"paddle.{name} is paddle.{other}" for name, other in rows.items()}


PROGRAMS: dict[str, str] = {
    **_spelled(),
    # ------------------------------------------------------------------- words for what layers are called with
    "nn.ReLU by name": "paddle.nn.ReLU(name='a')(x=x)",
    "nn.ReLU by name raises": "paddle.nn.ReLU()(input=x)",
    "nn.MSELoss by name": "layer = paddle.nn.MSELoss(); layer.reduction = 'sum'; out = layer(label=y, input=x)",
    "nn.LayerNorm options": "layer = paddle.nn.LayerNorm(3, eps=2**-10, bias=False, dtype='float64'); out = [layer(x), paddle.nn.LayerNorm([2, 3]).weight.shape, layer.bias is None]",
    "nn.LayerNorm bare": "paddle.nn.LayerNorm(3, elementwise_affine=False)(x)",
    "nn.LayerNorm places raises": "paddle.nn.LayerNorm(3, 1e-5, False)",
    "nn.GroupNorm places raises": "paddle.nn.GroupNorm(2, 4, 1e-5, False)",
    "nn.Embedding places raises": "paddle.nn.Embedding(4, 2, None, None, 2.0, True)",
    "nn.Conv2D places raises": "paddle.nn.Conv2D(2, 3, 3, 1, 0, 1, 1, 'zeros')",
    "nn.Embedding padding": "layer = paddle.nn.Embedding(4, 2, -1); out = [layer.weight[3].detach(), repr(layer), layer.padding_idx]",
    "nn.Embedding attributes": "layer = paddle.nn.Embedding(4, 2, 1); layer.padding_idx = 2; out = [layer._padding_idx, layer._num_embeddings, layer._embedding_dim, layer(paddle.to_tensor([2])).detach(), repr(layer)]",
    "nn.Embedding given": "layer = paddle.nn.Embedding(2, 3, _weight=paddle.ones([2, 3]), _freeze=True, sparse=True); out = [layer(input=paddle.to_tensor([1])), layer.weight.stop_gradient, repr(layer)]",
    "nn.functional.embedding far raises": "F.embedding(paddle.to_tensor([2]), x)",
    "nn.Conv2D attributes": "layer = paddle.nn.Conv2D(2, 4, 3, 2, 1, 1, 2); out = [layer._stride, layer._dilation, layer._groups, layer._kernel_size, layer._in_channels, layer._out_channels, layer._data_format, layer._padding_mode, layer._padding]",
    "nn.Conv2D padding raises": "paddle.nn.Conv2D(2, 3, 3, padding=[1, 2], padding_mode='reflect')",
    "nn.Conv2D attr raises": "paddle.nn.Conv2D(2, 3, 3, weight_attr=False)",
    "nn.Linear attr": "layer = paddle.nn.Linear(2, 3, True, True); out = [layer.weight.shape, layer.bias.shape]",
    "nn.BatchNorm2D axes raises": "paddle.nn.BatchNorm2D(4)(seq)",
    # ------------------------------------------------------------------- layers and what is in them
    "nn.Layer.full_name": f"{_NET}out = [net.full_name().rpartition('_')[0], net.one.weight.name.rpartition('.')[2], net.one.bias.name.rpartition('.')[2], paddle.nn.Layer('abc').full_name().rpartition('_')[0]]",
    "nn.Layer.named_sublayers": f"{_NET}out = [n for n, _ in net.named_sublayers()] + [n for n, _ in net.named_sublayers('a', True, remove_duplicate=False)] + [n for n, _ in net.named_sublayers(layers_set={{net.one}})]",
    "nn.Layer.named_parameters": f"{_NET}out = [n for n, _ in net.named_parameters(remove_duplicate=False)] + [n for n, _ in net.named_parameters(recurse=False)] + [n for n, _ in net.named_modules()]",
    "nn.Layer.register_forward_pre_hook": f"{_NET}seen = []\nnet.register_forward_pre_hook(lambda l, a: seen.append('a'))\nh = net.register_forward_pre_hook(lambda l, a, k: (a, {{'scale': 2.0}}), with_kwargs=True, prepend=True)\nfirst = net(b)\nout = [first, h.remove(), net(b), seen]",
    "nn.Layer.register_forward_post_hook": f"{_NET}seen = []\nh = net.register_forward_hook(lambda l, a, k, o: o * k.get('scale', 3.0), with_kwargs=True)\nnet.register_forward_post_hook(lambda l, a, o: seen.append(o is None))\nfirst = net(b, scale=2.0)\nh.remove()\nout = [first, net(b), seen]",
    "nn.Layer.state_dict": f"{_NET}out = [list(net.state_dict()), list(net.state_dict(structured_name_prefix='a.')), list(net.state_dict(include_sublayers=False)), all(p.stop_gradient for p in net.state_dict(keep_vars=False).values())]",
    "nn.Layer.set_state_dict": f"{_NET}out = [net.one.set_state_dict({{'weight': paddle.ones([3, 3]), 'bias': paddle.ones([2]), 'more': 1}}), net(b), net.one.set_state_dict({{net.one.bias.name: paddle.ones([3])}}, use_structured_name=False)[1], net(b)]",
    "nn.Layer.set_state_dict raises": f"{_NET}net.one.set_state_dict({{'weight': paddle.ones([3, 3], 'float64'), 'bias': paddle.ones([3])}})",
    "nn.Layer.float": f"{_NET}net.double()\nout = [net(b.astype('float64')), net.kept, net.float().one.weight.detach().clone(), net.type('float64').loose]",
    "nn.Layer.train": f"{_NET}out = [net.train(False).one.training, net.train().one.training, net.requires_grad_(False).one.weight.stop_gradient]",
    "nn.Layer.train raises": f"{_NET}net.train(1)",
    "nn.Layer.backward raises": f"{_NET}net.backward(b)",
    "nn.Layer.add_parameter raises": f"{_NET}net.add_parameter('one', paddle.create_parameter([1], 'float32'))",
    "nn.Layer.add_parameter dotted raises": f"{_NET}net.add_parameter('a.b', paddle.create_parameter([1], 'float32'))",
    "nn.Layer.add_sublayer raises": f"{_NET}net.add_sublayer('a', 3)",
    "nn.Layer.register_buffer raises": f"{_NET}net.register_buffer('one', paddle.ones([1]))",
    "nn.Sequential pairs": "repr(paddle.nn.Sequential(['a', paddle.nn.ReLU()], ('b', paddle.nn.Tanh())))",
    "nn.Sequential index raises": "paddle.nn.Sequential(paddle.nn.ReLU())[1]",
    "nn.LayerList edited": "layer = paddle.nn.LayerList([paddle.nn.ReLU(), paddle.nn.Tanh()]); layer.insert(-1, paddle.nn.Silu()); layer += [paddle.nn.Sigmoid()]; out = [repr(layer), repr(layer.pop(1)), repr(layer + layer), len(layer)]; del layer[1:]; out.append(repr(layer))",
    "nn.LayerList.insert raises": "paddle.nn.LayerList([paddle.nn.ReLU()]).insert(3, paddle.nn.ReLU())",
    "nn.ParameterList edited": "layer = paddle.nn.ParameterList([paddle.create_parameter([2], 'float32')]); layer[0] = paddle.full([2], 3.0); out = [layer[0].detach(), len(layer)]",
    "nn.ParameterList index raises": "paddle.nn.ParameterList([])[0]",
    "nn.Module": "paddle.nn.Module is paddle.nn.Layer",
    "nn.functional.logsigmoid": "F.logsigmoid(x)",

    # ------------------------------------------------------------------- first values
    "nn.initializer.Assign shape": "paddle.nn.Linear(2, 2, weight_attr=paddle.nn.initializer.Assign([2.0, 3.0])).weight.detach()",
    "nn.initializer.Initializer forward": "class I(paddle.nn.initializer.Initializer):\n    def forward(self, p, block=None):\n        paddle.assign(paddle.full(p.shape, 3.0), p)\nout = paddle.nn.Linear(2, 2, weight_attr=I()).weight.detach()",
    "nn.initializer.Initializer call": "class I(paddle.nn.initializer.Initializer):\n    def __call__(self, p, block=None):\n        p.set_value(paddle.full(p.shape, 3.0))\nout = paddle.nn.Linear(2, 2, weight_attr=paddle.ParamAttr(initializer=I())).weight.detach()",
    "create_parameter named": "[paddle.create_parameter([1], 'float32', is_bias=b).name.rpartition('.')[2] for b in (True, False)] + [paddle.create_parameter([1], 'float32', name='a').name]",
    # ------------------------------------------------------------------- losses and dropout
    "nn.functional.cross_entropy smooth": "F.cross_entropy(m, F.softmax(d.detach()), label_smoothing=0.1)",
    "nn.functional.cross_entropy smooth weight": "F.cross_entropy(m, F.softmax(d.detach()), w.detach(), label_smoothing=0.1, reduction='none')",
    "nn.functional.cross_entropy smooth column raises": "F.cross_entropy(m, paddle.to_tensor([[0], [1], [2]]), label_smoothing=0.1)",
    "nn.functional.cross_entropy negative raises": "F.cross_entropy(m, paddle.to_tensor([0, 1, -1]))",
    "nn.functional.cross_entropy soft ignored raises": "F.cross_entropy(m, d, soft_label=True, ignore_index=1)",
    "nn.functional.cross_entropy soft dtype raises": "F.cross_entropy(m, d.astype('float32'), soft_label=True)",
    "nn.functional.nll_loss negative raises": "F.nll_loss(m, paddle.to_tensor([0, 1, -1]))",
    "nn.functional.label_smooth double": "F.label_smooth(x, epsilon=0.3)",
    "nn.functional.label_smooth raises": "F.label_smooth(paddle.to_tensor([[0, 1]]))",
    "nn.functional.layer_norm epsilon raises": "F.layer_norm(x, 3, epsilon=0.01)",
    "nn.functional.layer_norm all raises": "F.layer_norm(x, [2, 3])",
    "nn.functional.layer_norm weight raises": "F.layer_norm(img, [6, 5], weight=img[0, 0])",
    "nn.functional.gumbel_softmax raises": "F.gumbel_softmax(x, -1.0)",
    "nn.functional.kl_div raises": "F.kl_div(x, v)",
    "nn.functional.gaussian_nll_loss raises": "F.gaussian_nll_loss(x, y, x)",
    "nn.functional.poisson_nll_loss raises": "F.poisson_nll_loss(x, y, epsilon=0.0)",
    "nn.functional.triplet_margin_loss raises": "F.triplet_margin_loss(x, y, p, margin=-1.0)",
    # ------------------------------------------------------------------- optimizers
    "Tensor.clear_gradient of a number": "a = paddle.to_tensor(float('inf'), stop_gradient=False); (a * a).backward(); a.clear_gradient(); out = a.grad",

    "static.create_parameter is": "paddle.enable_static(); out = paddle.static.create_parameter([1], 'float32').is_parameter; paddle.disable_static()",

    # ------------------------------------------------------------------- graphs
    "geometric.send_ue_recv edges": "[paddle.geometric.send_ue_recv(m, w, paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 2, 1]), a, r) for a in ('add', 'mul') for r in ('sum', 'mean', 'max')]",
    "geometric.send_ue_recv rows": "paddle.geometric.send_ue_recv(v, w, paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 2, 1]))",
    "geometric.send_ue_recv raises": "paddle.geometric.send_ue_recv(m, w[:1], paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 2, 1]))",
    "geometric.send_uv rows": "paddle.geometric.send_uv(v, m, paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 2, 1]))",
}  # fmt: skip

_SUM = "Paddle's gradient takes labels to add up to 1; smoothed in single precision they do not quite."

DIFFERS: dict[str, tuple[str, str]] = {
    "nn.functional.cross_entropy smooth": ("gradient 6 value", _SUM),
    "nn.functional.cross_entropy smooth weight": ("gradient 6 value", _SUM),
}
