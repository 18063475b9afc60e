//! Likelihoods that are named often enough to have a name: each is an expression like a user's own.

/// A named likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name, as in `kind = "…"`.
    pub name: &'static str,
    /// The law of a label, in one line.
    pub what: &'static str,
    /// log p(y | eta, parameters).
    pub likelihood: &'static str,
    /// Shared parameters: name and meaning. Each is sampled or held fixed.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Which labels it takes.
    pub label: Labels,
}

/// Kinds of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Two classes, −1 and 1.
    Binary,
    /// Numbers.
    Number,
    /// Numbers above 0.
    Positive,
    /// Numbers in (0, 1).
    Share,
    /// Whole numbers from 0.
    Count,
}

/// Name and log likelihood of a share of successes y in trials, over the number of these.
pub const SUCCESSES: (&str, &str) = ("successes", "y * eta - log1p_exp(eta)");

/// All of them.
pub const FAMILIES: [Family; 14] = [
    Family {
        name: "probit",
        what: "two classes, P(y = 1) = Φ(η)",
        likelihood: "std_normal_lcdf(y * eta)",
        parameters: &[],
        label: Labels::Binary,
    },
    Family {
        name: "cloglog",
        what: "two classes, P(y = 1) = 1 − exp(−e^η): an event that a rate brings about",
        likelihood: "if(y > 0, log(-expm1(-exp(eta))), -exp(eta))",
        parameters: &[],
        label: Labels::Binary,
    },
    Family {
        name: "gaussian",
        what: "numbers with mean η and unknown variance",
        likelihood: "-0.5 * ((y - eta) * exp(-log_sigma))^2 - log_sigma - 0.9189385332046727",
        parameters: &[("log_sigma", "log of the standard deviation")],
        label: Labels::Number,
    },
    Family {
        name: "student-t",
        what: "numbers about η with outliers: Student's t law",
        likelihood: "lgamma(0.5 * nu + 0.5) - lgamma(0.5 * nu) - 0.5 * log(nu) - 0.5723649429247001 - log_sigma - (0.5 * nu + 0.5) * log1p(((y - eta) * exp(-log_sigma))^2 / nu)",
        parameters: &[
            ("log_sigma", "log of the scale"),
            (
                "nu",
                "degrees of freedom, a number in [model.constants]: 4 is usual",
            ),
        ],
        label: Labels::Number,
    },
    Family {
        name: "log-normal",
        what: "positive numbers whose logarithm has mean η and unknown variance",
        likelihood: "-0.5 * ((log(y) - eta) * exp(-log_sigma))^2 - log_sigma - log(y) - 0.9189385332046727",
        parameters: &[("log_sigma", "log of the standard deviation of log(y)")],
        label: Labels::Positive,
    },
    Family {
        name: "gamma",
        what: "positive numbers with mean e^η: the gamma law",
        likelihood: "exp(log_shape) * (log_shape - eta + log(y) - y * exp(-eta)) - lgamma(exp(log_shape)) - log(y)",
        parameters: &[("log_shape", "log of the shape; 0 is the exponential law")],
        label: Labels::Positive,
    },
    Family {
        name: "negative-binomial",
        what: "counts with mean e^η that vary more than a Poisson law's: variance μ + μ²/shape",
        likelihood: "lgamma(y + exp(log_shape)) - lgamma(exp(log_shape)) - exp(log_shape) * log1p_exp(eta - log_shape) - y * log1p_exp(log_shape - eta) - lgamma(y + 1)",
        parameters: &[("log_shape", "log of the shape")],
        label: Labels::Count,
    },
    Family {
        name: "binomial",
        what: "successes in a number of trials that is the same for all rows, each with chance inv_logit(η)",
        likelihood: "y * eta - trials * log1p_exp(eta) + lgamma(trials + 1) - lgamma(y + 1) - lgamma(trials - y + 1)",
        parameters: &[("trials", "their number, a number in [model.constants]")],
        label: Labels::Count,
    },
    Family {
        name: "zero-inflated-poisson",
        what: "counts of Poisson's law with mean e^η, or 0 whatever η is",
        likelihood: "if(y > 0, -log1p_exp(logit_zero) + y * eta - exp(eta) - lgamma(y + 1), log(inv_logit(logit_zero) + inv_logit(-logit_zero) * exp(-exp(eta))))",
        parameters: &[("logit_zero", "log odds of the 0 whatever η is")],
        label: Labels::Count,
    },
    Family {
        name: "zero-inflated-negative-binomial",
        what: "counts of a negative binomial law with mean e^η, or 0 whatever η is",
        likelihood: "if(y > 0, -log1p_exp(logit_zero) + lgamma(y + exp(log_shape)) - lgamma(exp(log_shape)) - exp(log_shape) * log1p_exp(eta - log_shape) - y * log1p_exp(log_shape - eta) - lgamma(y + 1), log(inv_logit(logit_zero) + inv_logit(-logit_zero) * exp(-exp(log_shape) * log1p_exp(eta - log_shape))))",
        parameters: &[
            ("log_shape", "log of the shape"),
            ("logit_zero", "log odds of the 0 whatever η is"),
        ],
        label: Labels::Count,
    },
    Family {
        name: "log-normal-survival",
        what: "times of events whose logarithm is normal with mean η; y < 0 is a time without the event",
        likelihood: "if(y > 0, -0.5 * ((log(if(y > 0, y, -y)) - eta) * exp(-log_sigma))^2 - log_sigma - log(if(y > 0, y, -y)) - 0.9189385332046727, std_normal_lcdf((eta - log(if(y > 0, y, -y))) * exp(-log_sigma)))",
        parameters: &[("log_sigma", "log of the standard deviation of log(y)")],
        label: Labels::Number,
    },
    Family {
        name: "beta",
        what: "shares between 0 and 1 with mean inv_logit(η): the beta law",
        likelihood: "lgamma(exp(log_precision)) - lgamma(inv_logit(eta) * exp(log_precision)) - lgamma(inv_logit(-eta) * exp(log_precision)) + inv_logit(eta) * exp(log_precision) * log(y) + inv_logit(-eta) * exp(log_precision) * log1p(-y) - log(y) - log1p(-y)",
        parameters: &[("log_precision", "log of the precision")],
        label: Labels::Share,
    },
    Family {
        name: "weibull",
        what: "times of events with scale e^η: the Weibull law; y < 0 is a time without the event",
        likelihood: "if(y > 0, log_shape + exp(log_shape) * (log(y) - eta) - log(y), 0) - exp(exp(log_shape) * (log(if(y > 0, y, -y)) - eta))",
        parameters: &[("log_shape", "log of the shape; 0 is the exponential law")],
        label: Labels::Number,
    },
    Family {
        name: "quantile",
        what: "the declared quantile of numbers: the asymmetric Laplace law, its kink rounded off",
        likelihood: "(share * (eta - y) - width * log1p_exp((eta - y) / width)) * exp(-log_scale) - log_scale + log(share * (1 - share))",
        parameters: &[
            (
                "share",
                "the quantile, a number in [model.constants]: 0.5 is the median",
            ),
            (
                "width",
                "how wide the kink is rounded off, in units of y, a number in [model.constants]",
            ),
            ("log_scale", "log of the scale"),
        ],
        label: Labels::Number,
    },
];

/// The family of this name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.name == name)
}
