import pcbatch


class Model:
    @pcbatch.autobatch
    def f(self, x):
        if x > 0:
            self, y = x, 1
        return self.w
