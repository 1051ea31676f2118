//! A certificate authority, a serving certificate and the keys for service account tokens, made with `openssl`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Writes `ca.crt`, `tls.crt`, `tls.key`, `sa.key` and `sa.pub`, and the files that `openssl` makes besides, into a
/// folder; `name` is part of the names in both certificates.
pub(crate) fn write(folder: &Path, name: &str) -> Result<()> {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority = format!("/CN={name} certificate authority");
    let mut root =
        vec!["req", "-x509", "-days", "3650", "-subj", &authority, "-keyout", "ca.key", "-out", "ca.crt"];
    root.extend(curve);
    root.extend(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]);
    openssl(folder, &root)?;

    let subject = format!("/CN={name} kube-apiserver");
    let mut request = vec!["req", "-subj", &subject, "-keyout", "tls.key", "-out", "tls.csr"];
    request.extend(curve);
    openssl(folder, &request)?;
    // The names that Pods would use for the API server, and those that this machine uses.
    let extensions = "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n\
                      subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1\n";
    fs::write(folder.join("tls.ext"), extensions)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    openssl(
        folder,
        &[
            "x509",
            "-req",
            "-in",
            "tls.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "3650",
            "-extfile",
            "tls.ext",
            "-out",
            "tls.crt",
        ],
    )?;
    openssl(
        folder,
        &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "sa.key"],
    )?;
    openssl(folder, &["pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub"])
}

fn openssl(folder: &Path, arguments: &[&str]) -> Result<()> {
    let verb = arguments.first().copied().unwrap_or_default();
    let output = match Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
    {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "`openssl` is not on PATH, and the API server's certificates are made with it: install your system's \
             package openssl"
        ),
        Err(error) => return Err(error).with_context(|| format!("cannot run `openssl {verb}`")),
    };
    if !output.status.success() {
        bail!(
            "`openssl {verb}` failed in {} ({}): {}",
            folder.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
