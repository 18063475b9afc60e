import numpy as np
from diffprivlib.models import LogisticRegression
from table import adult

rows, labels = adult()
bound = np.sqrt(rows.shape[1])
model = LogisticRegression(epsilon=3, data_norm=bound, fit_intercept=False, C=25)
print(model.fit(rows, labels).coef_)
