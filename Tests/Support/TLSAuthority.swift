// SPDX-License-Identifier: Apache-2.0

/// The tests' own certificate authorities and certificates for `localhost`, created by `openssl` within a second; one set for all tests.
///
/// A root signs an intermediate, which signs the others; `other-root` signs `other`. Keys are in `NAME.key`, certificates in `NAME.pem`,
/// chains to send in `NAME.chain`.
public final class TLSAuthority: Sendable {
    private static let directory = Result { try TemporaryDirectory() }
    private let directory: TemporaryDirectory

    /// Whether the programs are there that this needs.
    public static var isAvailable: Bool {
        Servers.areRequired || ["openssl", "python3"].allSatisfy { ChildProcess.path(of: $0) != nil }
    }

    private static let made = Task { try await TLSAuthority() }

    /// Returns the set of certificates of all tests, created on first use.
    public static func shared() async throws -> TLSAuthority { try await made.value }

    private init() async throws {
        directory = try Self.directory.get()
        // Static objects are never released, so the directory is removed at exit.
        atexit { try? FileManager.default.removeItem(at: TLSAuthority.directory.get().url) }
        let (status, output) = try await ChildProcess("sh", "-c", Self.script, "sh", directory.url.path).finish()
        guard status == 0 else { throw TestError("openssl failed to create the certificates: \(output.suffix(5))") }
    }

    /// Returns the path of a file of the set.
    public func path(_ name: String) -> String { directory.file(name).path }

    /// Returns the contents of a file of the set.
    public func data(_ name: String) throws -> Data { try Data(contentsOf: directory.file(name)) }

    private static let script = """
        cd "$1" && exec 2>&1 && set -e
        cat >ca.conf <<'CONF'
        [ca]
        default_ca = x
        [x]
        database = $ENV::CA/db
        new_certs_dir = $ENV::CA
        rand_serial = yes
        default_md = sha256
        default_crl_days = 2
        unique_subject = no
        policy = p
        [p]
        commonName = optional
        [authority]
        basicConstraints = critical, CA:TRUE
        subjectKeyIdentifier = hash
        [server]
        subjectAltName = DNS:localhost
        extendedKeyUsage = serverAuth
        [elsewhere]
        subjectAltName = DNS:elsewhere.example
        [nameless]
        extendedKeyUsage = serverAuth
        [mailed]
        subjectAltName = email:localhost@example.org, URI:https://localhost/
        extendedKeyUsage = serverAuth
        [client]
        extendedKeyUsage = clientAuth
        [signer]
        extendedKeyUsage = OCSPSigning
        CONF
        future=$(date -u -d '+2 days' +%Y%m%d%H%M%SZ 2>/dev/null || date -u -v+2d +%Y%m%d%H%M%SZ)
        sign() { # NAME ISSUER EXTENSIONS [END [COMMON_NAME]]
            export CA="$2.d"
            mkdir -p "$CA"
            touch "$CA/db"
            [ -e "$1.key" ] || openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
            openssl req -new -key "$1.key" -subj "/CN=${5:-$1}" -out "$1.csr"
            if [ "$1" = "$2" ]; then self=-selfsign; else self="-cert $2.pem"; fi
            openssl ca -batch -notext -config ca.conf $self -keyfile "$2.key" -in "$1.csr" -out "$1.pem" -extensions "$3" \\
                -startdate 20200101000000Z -enddate "${4:-$future}"
            cat "$1.pem" >"$1.chain"
            if [ "$2" = intermediate ]; then cat intermediate.pem >>"$1.chain"; fi
        }
        sign root root authority
        sign intermediate root authority
        sign other-root other-root authority
        for name in good second revoked; do sign $name intermediate server; done
        sign expired intermediate server 20210101000000Z
        sign elsewhere intermediate elsewhere
        # Its common name is that of the host, and it has no other.
        sign localhost intermediate nameless
        # The same, with alternative names that are no host's.
        sign mailed intermediate mailed "$future" localhost
        sign self self server
        sign self-elsewhere self-elsewhere elsewhere
        # The key of `good` in a certificate of another authority.
        cp good.key resigned.key
        sign resigned other-root server
        sign other other-root server
        sign client other-root client
        sign stranger root client
        sign signer intermediate signer
        # The chain of an impostor: its own valid certificate with another host's certificate appended.
        cat good.chain other.pem other-root.pem >appended.chain
        cp good.key appended.key

        CA=intermediate.d openssl ca -config ca.conf -revoke revoked.pem -cert intermediate.pem -keyfile intermediate.key
        for name in intermediate root; do
            CA=$name.d openssl ca -config ca.conf -gencrl -cert $name.pem -keyfile $name.key -out $name.crl
        done
        cat intermediate.crl root.crl >all.crl
        for name in good revoked; do
            openssl ocsp -issuer intermediate.pem -cert $name.pem -no_nonce -reqout $name.request
            openssl ocsp -index intermediate.d/db -CA intermediate.pem -rsigner signer.pem -rkey signer.key -reqin $name.request \\
                -respout $name.ocsp -ndays 2
        done
        openssl pkcs12 -export -in client.pem -inkey client.key -passout pass:secret -out client.p12
        openssl pkey -in client.key -aes128 -passout pass:secret -out client.encrypted
        """
}
