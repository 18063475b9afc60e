import arviz
import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from table import adult

rows, labels = adult()


def model(rows, labels):
    beta = numpyro.sample("beta", dist.Normal(0, 5).expand([rows.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=rows @ beta), obs=labels)


mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=1000, num_chains=1)
mcmc.run(jax.random.PRNGKey(1), rows, labels)
print(arviz.summary(arviz.from_numpyro(mcmc)))
