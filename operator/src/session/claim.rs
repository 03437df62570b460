//! The claim of a Session's volume. It has no owner reference: only the Session's own end deletes it, by UID and policy.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use mooring_operator_api::{ExecutorClass, Session, Uid, label};

use crate::{labels, names};

/// The size of a volume of which neither Session nor class say anything.
const SIZE: &str = "10Gi";
/// Label of a claim that outlives its Session, by the Session's own policy.
pub(crate) const RETAINED: &str = "mooring.dev/retained";

/// 128 random bits as 32 lower-case hexadecimal digits: which life of the volume this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision(String);

impl Revision {
    /// Draws one.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn draw() -> Result<Self, getrandom::Error> {
        let mut bits = [0_u8; 16];
        getrandom::fill(&mut bits)?;
        Ok(Self(names::hex(&bits)))
    }

    /// Reads one as it was drawn; anything else is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a volume may be used by one pod alone, or only by one node (KEP-2485: the former needs a CSI driver).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// `ReadWriteOncePod`.
    OnePod,
    /// `ReadWriteOnce`.
    OneNode,
}

/// The storage class that a Session asks for: its own, or else its class's. `None`: the cluster's default one.
pub(crate) fn storage_class(session: &Session, class: &ExecutorClass) -> Option<String> {
    let own = session.spec.workspace.as_ref().and_then(|it| it.storage.as_ref()?.class_name.as_ref());
    let of_class = class.spec.storage.as_ref().and_then(|it| it.class_name.as_ref());
    own.or(of_class).map(ToString::to_string)
}

/// The claim, with a revision that is drawn once for it.
pub(crate) fn desired_claim(
    session: &Session,
    class: &ExecutorClass,
    access: Access,
    revision: &Revision,
) -> PersistentVolumeClaim {
    let own = session.spec.workspace.as_ref().and_then(|it| it.storage.as_ref()?.size.clone());
    let of_class = class.spec.storage.as_ref().and_then(|it| it.size.clone());
    let size = own.or(of_class).unwrap_or_else(|| Quantity(SIZE.to_owned()));
    let access = match access {
        Access::OnePod => "ReadWriteOncePod",
        Access::OneNode => "ReadWriteOnce",
    };
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::claim(&Uid::from(session.uid().unwrap_or_default()))),
            namespace: session.meta().namespace.clone(),
            labels: Some(labels::of_session(session)),
            annotations: Some(labels::pairs([(label::REVISION, revision.as_str())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![access.to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), size)].into()),
                limits: None,
            }),
            storage_class_name: storage_class(session, class),
            volume_mode: Some("Filesystem".to_owned()),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_drawn_anew_and_read_as_drawn() {
        let (one, two) = (Revision::draw().expect("random"), Revision::draw().expect("random"));
        assert_ne!(one, two);
        assert_eq!(Revision::read(one.as_str()), Some(one));
        let long = "0".repeat(33);
        for text in ["", "0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF", &long, &"é".repeat(16)] {
            assert_eq!(Revision::read(text), None, "{text}");
        }
    }
}
