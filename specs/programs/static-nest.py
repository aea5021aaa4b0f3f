import paddle
paddle.enable_static()
with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
    x = paddle.static.data("x", [2], "float32")
    out = paddle.static.nn.static_pylayer(lambda x: (x * 2, [x * 3, x * 5]), [x])
print(type(out).__name__, len(out))
# documents: tuple 2
# 3.3.1: list 3
