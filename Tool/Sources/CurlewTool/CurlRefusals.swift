// SPDX-License-Identifier: Apache-2.0

/// The options of curl that are errors here, each with the reason.
struct CurlRefusal {
    let reason: String

    static let all: [String: CurlRefusal] = Dictionary(
        uniqueKeysWithValues: groups.flatMap { group in
            group.names.splitScalars(separator: " ").map { ("--\($0)", CurlRefusal(reason: group.reason)) }
        })

    private static let groups: [(reason: String, names: String)] = [
        (
            "the library's choice of TLS parameters can't be changed",
            """
            ciphers tls13-ciphers curves sigalgs tlsauthtype tlspassword tlsuser ssl-allow-beast engine ech tls-earlydata ssl-sessions \
            no-alpn
            """
        ),
        ("trusted certificates are read from one file; see --cacert", "capath dump-ca-embed"),
        (
            "only the proxy's address, name and password can be given",
            """
            proxy-anyauth proxy-digest proxy-ntlm proxy-negotiate proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers \
            proxy-crlfile proxy-header proxy-http2 proxy-insecure proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey \
            proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy1.0 proxytunnel \
            preproxy socks5-gssapi socks5-gssapi-nec socks5-gssapi-service haproxy-protocol haproxy-clientip
            """
        ),
        ("Kerberos takes the usual service and delegates nothing", "delegation service-name ntlm-wb"),
        ("names are resolved by the system, or by --doh-url", "dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-cert-status"),
        ("HTTP/1.1 is the oldest version", "http0.9 http1.0"),
        ("messages are framed as HTTP says", "ignore-content-length raw tr-encoding request-target crlf"),
        ("a redirected POST becomes a GET, but for 307 and 308", "post301 post302 post303 follow"),
        ("alternative services are not kept in a file", "alt-svc"),
        ("-v, curlew --har and curlew --waterfall show what was on the wire", "trace trace-ascii trace-config"),
        ("it prints a program", "libcurl"),
        ("see curlew --help and curlew --version", "help manual version"),
        ("transfers begin as soon as they can", "rate"),
        ("it changes what the system does with packets or files in ways that are not offered", "vlan-priority ip-tos mptcp xattr"),
        ("fields of forms are escaped as browsers do", "form-escape"),
        ("only http and https are supported", "ipfs-gateway"),
    ]
}

extension CurlOption {
    /// What changes nothing: because it is so anyway, or only what curl prints, because curl with OpenSSL ignores it, or because it
    /// concerns other protocols than HTTP, for whose URLs curl does not look at it.
    static let without: [String: CurlOption] = {
        let flags = """
            ssl ssl-reqd ftp-ssl ftp-ssl-reqd ca-native proxy-ca-native proxy-basic socks5-basic no-npn npn alpn sessionid \
            no-sessionid no-progress-meter progress-meter progress-bar no-buffer buffer styled-output disable trace-time trace-ids use-ascii \
            tcp-nodelay parallel-immediate suppress-connect-headers metalink sslv2 sslv3 false-start ssl-no-revoke ssl-revoke-best-effort \
            ssl-auto-client-cert proxy-ssl-allow-beast proxy-ssl-auto-client-cert append compressed-ssh disable-eprt disable-epsv eprt \
            epsv ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-control list-only mail-rcpt-allowfails sasl-ir \
            tftp-no-options
            """
        let values = """
            expect100-timeout parallel-max-host egd-file random-file ftp-account ftp-alternative-to-user ftp-method ftp-port \
            ftp-ssl-ccc-mode hostpubmd5 hostpubsha256 knownhosts krb krb4 login-options mail-auth mail-from mail-rcpt pubkey quote \
            sasl-authzid telnet-option tftp-blksize upload-flags
            """
        var options: [String: CurlOption] = [:]
        for name in flags.splitScalars(separator: " ") { options["--\(name)"] = .nothing }
        for name in values.splitScalars(separator: " ") { options["--\(name)"] = .ignoredValue }
        return options
    }()
}
