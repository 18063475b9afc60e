import arviz
import nutpie
import pymc as pm
from table import adult

rows, labels = adult()
with pm.Model() as model:
    beta = pm.Normal("beta", 0, 5, shape=rows.shape[1])
    pm.Bernoulli("y", logit_p=rows @ beta, observed=labels)
compiled = nutpie.compile_pymc_model(model)
print(arviz.summary(nutpie.sample(compiled, draws=1000, tune=500, chains=1, seed=1)))
