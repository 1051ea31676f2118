//! The clusters that were asked, each once.

use crate::objects::Objects;

/// One cluster, under the first name by which it was asked for.
pub(crate) struct Member<'a> {
    pub(crate) objects: &'a dyn Objects,
    /// Its other names.
    pub(crate) aliases: Vec<String>,
    /// Its addresses, those of its other names included, in the form that [`address`] gives them.
    servers: Vec<String>,
}

/// All clusters that were asked; they are known by their place in it.
pub(crate) struct Fleet<'a> {
    pub(crate) members: Vec<Member<'a>>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(clusters: &[&'a dyn Objects]) -> Fleet<'a> {
        let mut members: Vec<Member<'a>> = Vec::with_capacity(clusters.len());
        for &objects in clusters {
            let servers = objects.servers().iter().map(|server| address(server));
            let same =
                |member: &&mut Member<'a>| objects.id().is_some() && member.objects.id() == objects.id();
            match members.iter_mut().find(same) {
                Some(member) => {
                    member.servers.extend(servers);
                    member.aliases.push(objects.name().to_owned());
                }
                None => members.push(Member { objects, aliases: Vec::new(), servers: servers.collect() }),
            }
        }
        Fleet { members }
    }

    /// The objects of the cluster at a place in the fleet.
    pub(crate) fn objects(&self, cluster: usize) -> &'a dyn Objects {
        self.members[cluster].objects
    }

    /// All names of the cluster at a place in the fleet.
    pub(crate) fn names(&self, cluster: usize) -> impl Iterator<Item = &str> {
        let member = &self.members[cluster];
        std::iter::once(member.objects.name()).chain(member.aliases.iter().map(String::as_str))
    }

    /// The cluster that answers at `server`.
    pub(crate) fn by_server(&self, server: &str) -> Option<usize> {
        let server = address(server);
        self.members.iter().position(|member| member.servers.contains(&server))
    }
}

/// An address in the form in which two spellings of it are equal: scheme and host in small letters, no
/// default port, no slash at the end.
fn address(server: &str) -> String {
    let server = server.trim().trim_end_matches('/');
    let Some((scheme, rest)) = server.split_once("://") else { return server.to_ascii_lowercase() };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let scheme = scheme.to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    let default_port = if scheme == "http" { ":80" } else { ":443" };
    format!("{scheme}://{}{path}", host.strip_suffix(default_port).unwrap_or(&host))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn spellings_of_one_address_are_equal() {
        for (one, other) in [
            ("https://EDGE.example.com:6443/", "https://edge.example.com:6443"),
            ("https://edge.example.com", "https://edge.example.com:443"),
            ("http://edge.example.com:80", "HTTP://edge.example.com/"),
            ("https://rancher.example.com/k8s/clusters/c-1/", "https://rancher.example.com/k8s/clusters/c-1"),
        ] {
            assert_eq!(address(one), address(other));
        }
        assert_ne!(address("https://edge.example.com:6443"), address("https://edge.example.com"));
        assert_ne!(address("https://r.example.com/k8s/A"), address("https://r.example.com/k8s/a"));
    }
}
