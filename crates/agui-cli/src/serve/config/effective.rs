//! What a configuration comes to.

use std::fmt;

use super::reader::{Asked, quoted};
use super::tree::Origin;

/// Every key with the value that counts, as a file that can be read again but for its secrets, and
/// where each value comes from.
pub(in crate::serve) struct Effective(pub(super) Vec<Asked>);

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sections: Vec<&[String]> = Vec::new();
        for Asked { section, .. } in &self.0 {
            if !sections.contains(&&section[..]) {
                sections.push(section);
            }
        }
        for section in sections {
            if !section.is_empty() {
                let path: Vec<String> = section.iter().map(|key| quoted(key)).collect();
                writeln!(f, "\n[{}]", path.join("."))?;
            }
            for Asked { key, shown, origin, .. } in
                self.0.iter().filter(|asked| asked.section == section)
            {
                let key = quoted(key);
                match (shown, origin) {
                    (None, _) => writeln!(f, "# {key} is not set")?,
                    (Some(value), Origin::Default) => writeln!(f, "{key} = {value}")?,
                    (Some(value), origin) => writeln!(f, "{key} = {value}  # {origin}")?,
                }
            }
        }
        Ok(())
    }
}
