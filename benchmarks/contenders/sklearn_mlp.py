"""scikit-learn MLPClassifier

`partial_fit` on all images is one epoch: it shuffles them and goes through them batch by batch.
"""

from sklearn.neural_network import MLPClassifier

from benchmarks.work import CLASSES, run_epochs, scaled


def train(data, work):
    images, labels, tests = scaled(data.train_images), data.train_labels, scaled(data.test_images)
    model = MLPClassifier(
        hidden_layer_sizes=work.hidden,
        activation="relu",
        solver="sgd",
        learning_rate_init=work.rate,
        momentum=0,
        nesterovs_momentum=False,
        alpha=0,
        batch_size=work.batch,
        shuffle=True,
        random_state=work.seed,
    )
    classes = list(range(CLASSES))

    def train_epoch():
        model.partial_fit(images, labels, classes=classes)

    return run_epochs(work, train_epoch, lambda: float(model.score(tests, data.test_labels)))
