import numpy, paddle
paddle.enable_static()
main, exe = paddle.static.Program(), paddle.static.Executor(paddle.CPUPlace())
with paddle.static.program_guard(main, paddle.static.Program()):
    x = paddle.static.data(name="X", shape=[None, 5], dtype="float32")
    x.stop_gradient = False
    y = paddle.static.nn.static_pylayer(paddle.exp, [x], lambda dy: 2 * paddle.exp(dy))
    dx = paddle.static.gradients([y], x)[0]
feed = {"X": numpy.array([[1, 2, 3, 4, 5]], "float32")}
print(exe.run(main, feed=feed, fetch_list=[x.name, dx.name, y.name])[1])
# documents: [[5.4365635 5.4365635 5.4365635 5.4365635 5.4365635]]
# 3.3.1: ValueError
