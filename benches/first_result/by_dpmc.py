import dpmc
import pandas

people = pandas.read_csv("examples/data/adult_train.csv.gz")
run = dpmc.sample(
    people,
    name="adult",
    formula="income ~ age + `hours-per-week` + I(`marital-status` == 'Married-civ-spouse')",
    columns={
        "income": {"positive": [">50K"], "negative": ["<=50K"]},
        "age": {"scale": [17, 90]},
        "hours-per-week": {"scale": [1, 99]},
    },
    model={"kind": "logistic", "prior": {"kind": "normal", "sd": 5.0}},
    epsilon=3,
    delta=1e-6,
)
print(run.summary())
