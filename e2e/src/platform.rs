//! The product on a real cluster, as its people meet it: a platform team installs it, a person writes Sessions with kubectl,
//! and everybody sees what the API server shows.
//!
//! ```text
//!  ground       which cluster; its admin's client and kubectl
//!  product      the chart, installed once; the place and the certificate of a harness
//!  interceptor  an API server that fails as it is told, for an operator beside the installed one
//!  caller       somebody with an identity of their own: a person's certificate, an account's token
//!  namespace    a test's own, Pod Security restricted
//!  session ───▶ watch       every version of one object, with the time at which it was seen
//!          └──▶ execution   a client of the executor that is bound
//! ```

mod caller;
mod ground;
mod interceptor;
mod kubectl;
mod namespace;
mod product;
mod session;
mod status;
mod watch;

pub use caller::{Answer, Caller, DRY_RUN};
pub use ground::Ground;
pub use interceptor::{Fate, Interceptor, Write};
pub use kubectl::{Kubectl, Said};
pub use namespace::Namespace;
pub use product::{OPERATOR, Product, SYSTEM, chart};
pub use session::{Bound, Session};
pub use status::{Environment, Executor, SessionStatus, VolumeClaim};
pub use watch::{Sighting, Watch};
