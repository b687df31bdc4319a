// SPDX-License-Identifier: Apache-2.0

/// Certificates in PEM for tests without a server: generated once, valid from 2020 to 2149, their keys discarded.
public enum TestCertificates {
    /// `C=CH, O=Curlew, CN=Curlew Test Root`, self-signed.
    public static let root = """
        -----BEGIN CERTIFICATE-----
        MIIBuDCCAV6gAwIBAgIUV8JiuOmDrliyDQtgfJ/Gk+cnXB8wCgYIKoZIzj0EAwIw
        OTELMAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEZMBcGA1UEAwwQQ3VybGV3
        IFRlc3QgUm9vdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTUwMDEwMTAwMDAwMFowOTEL
        MAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEZMBcGA1UEAwwQQ3VybGV3IFRl
        c3QgUm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABObY9e4+6kV0OStT6+kc
        fxTGCbKGkC06T4nMz9nGGlr0JvTdlss6y0Xg2olfCoH8jx/hWIqep9O4bP+elrfN
        3YujQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQW
        BBSGhzoxCVMU8PyPvt4sdDKE0qcS2jAKBggqhkjOPQQDAgNIADBFAiEAlqnhnMvr
        AydhD711uOjXCRYgHENYzeuJ+GcOJKQkV84CIBTLSNPLhzbTPP5FfA07jlZdct85
        PYEB/d5Ry636isPt
        -----END CERTIFICATE-----
        """

    /// `C=CH, O=Curlew, CN=Curlew Test Intermediate`, signed by ``root``.
    public static let intermediate = """
        -----BEGIN CERTIFICATE-----
        MIIB4jCCAYegAwIBAgIUTU5f0KBbMo85FxtxXKUg9w3BxCUwCgYIKoZIzj0EAwIw
        OTELMAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEZMBcGA1UEAwwQQ3VybGV3
        IFRlc3QgUm9vdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTUwMDEwMTAwMDAwMFowQTEL
        MAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEhMB8GA1UEAwwYQ3VybGV3IFRl
        c3QgSW50ZXJtZWRpYXRlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErbDnSKWQ
        BR26Z1TYdK5ILzTcUIHjeHfAQ80p3tXQv7nh508SWeEyfjdaU6TAoADBWgA7G5bP
        RIO12H8Cx1aNRqNjMGEwDwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAQYw
        HQYDVR0OBBYEFLBT3eRKOm0nzGQhB6jITfHzedLyMB8GA1UdIwQYMBaAFIaHOjEJ
        UxTw/I++3ix0MoTSpxLaMAoGCCqGSM49BAMCA0kAMEYCIQDxB2vmfOWgGnHDwFr2
        kBVNlflM1ui0TcH8oObjfFzCQwIhANJ2Zqj9rFII5F8n7dDGBT9yqKS8w4RD38ay
        Hwjx5SNL
        -----END CERTIFICATE-----
        """

    /// `C=CH, O=Curlew, "Tests"; Zürich, CN=www.example.org`, signed by ``intermediate``, with names of all types.
    public static let leaf = """
        -----BEGIN CERTIFICATE-----
        MIICdjCCAhygAwIBAgIUe2GsQzgp5ORD5JCURwB+e1uiAywwCgYIKoZIzj0EAwIw
        QTELMAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEhMB8GA1UEAwwYQ3VybGV3
        IFRlc3QgSW50ZXJtZWRpYXRlMCAXDTIwMDEwMTAwMDAwMFoYDzIxNDkxMjMxMjM1
        OTU5WjBKMQswCQYDVQQGEwJDSDEhMB8GA1UECgwYQ3VybGV3LCAiVGVzdHMiOyBa
        w7xyaWNoMRgwFgYDVQQDDA93d3cuZXhhbXBsZS5vcmcwWTATBgcqhkjOPQIBBggq
        hkjOPQMBBwNCAARdogKel9OkbUjm+zK1NygfUMx0O8aCIiYdJYlyI3GlNiwUjicc
        hbkIAxng/ysPfrXp2/WlQzQ1wWrL2skxoMvlo4HmMIHjMAwGA1UdEwEB/wQCMAAw
        DgYDVR0PAQH/BAQDAgeAMBMGA1UdJQQMMAoGCCsGAQUFBwMBMG4GA1UdEQRnMGWC
        D3d3dy5leGFtcGxlLm9yZ4INKi5leGFtcGxlLm5ldIcEwAACAYcQIAENuAAAAAAA
        AAAAAAAAAYEQcm9vdEBleGFtcGxlLm9yZ4YUaHR0cHM6Ly9leGFtcGxlLm9yZy+I
        AyoDBDAdBgNVHQ4EFgQUyogAQyu95mU4oQX+GfpV+d2d+TUwHwYDVR0jBBgwFoAU
        sFPd5Eo6bSfMZCEHqMhN8fN50vIwCgYIKoZIzj0EAwIDSAAwRQIhAJtVdYfFpaTp
        NG9i0jwJWWu0jvXx+kWT/pXdD+dEANiPAiBOLGakkoAA7mA2dIBjVhxtMV2sCtpX
        tDEqOVSBf6+0uQ==
        -----END CERTIFICATE-----
        """

    /// `CN=www.example.org`, signed by ``intermediate``, expired in 2021.
    public static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBuzCCAWGgAwIBAgIUGKeHwumQf6uxVP2SPB9ik+hOx/8wCgYIKoZIzj0EAwIw
        QTELMAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEhMB8GA1UEAwwYQ3VybGV3
        IFRlc3QgSW50ZXJtZWRpYXRlMB4XDTIwMDEwMTAwMDAwMFoXDTIxMDEwMTAwMDAw
        MFowGjEYMBYGA1UEAwwPd3d3LmV4YW1wbGUub3JnMFkwEwYHKoZIzj0CAQYIKoZI
        zj0DAQcDQgAEXaICnpfTpG1I5vsytTcoH1DMdDvGgiImHSWJciNxpTYsFI4nHIW5
        CAMZ4P8rD3616dv1pUM0NcFqy9rJMaDL5aNeMFwwGgYDVR0RBBMwEYIPd3d3LmV4
        YW1wbGUub3JnMB0GA1UdDgQWBBTKiABDK73mZTihBf4Z+lX53Z35NTAfBgNVHSME
        GDAWgBSwU93kSjptJ8xkIQeoyE3x83nS8jAKBggqhkjOPQQDAgNIADBFAiAy7jPX
        qe5WsHcB+Bp9H1H0ZhVn7WZRbGSwMd7/86AmxwIhAPtM3/3OmDt/cG0z6NPnYqvJ
        IlxvuGjZFUVEIWf5PGOO
        -----END CERTIFICATE-----
        """

    /// The subject of ``root`` with a different key.
    public static let otherRoot = """
        -----BEGIN CERTIFICATE-----
        MIIBuDCCAV6gAwIBAgIUIG0X06Be4DSd9xtGIGqU6Q3AJ4IwCgYIKoZIzj0EAwIw
        OTELMAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEZMBcGA1UEAwwQQ3VybGV3
        IFRlc3QgUm9vdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTUwMDEwMTAwMDAwMFowOTEL
        MAkGA1UEBhMCQ0gxDzANBgNVBAoMBkN1cmxldzEZMBcGA1UEAwwQQ3VybGV3IFRl
        c3QgUm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABB7jbNEOkT2EohvTCWm+
        1ibnklZ8MMckh03XjeaIz2slvBSRJyjyAqd+PWkgq/aOQi+GtVbdCnUnDWkZd3FQ
        gkCjQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQW
        BBQwQWLXWAgt9GnhePrqlZUcrneYNDAKBggqhkjOPQQDAgNIADBFAiEA8ytRchjc
        arl4SlplXtPqbZhsfXnPG/Ll0gM5HawAay8CIDVtUbgNGqRXgiLXR7d+GJy6vT3X
        Qf3GTs+w5evcWGUF
        -----END CERTIFICATE-----
        """

    /// The public key of ``leaf``.
    public static let leafKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEXaICnpfTpG1I5vsytTcoH1DMdDvG
        giImHSWJciNxpTYsFI4nHIW5CAMZ4P8rD3616dv1pUM0NcFqy9rJMaDL5Q==
        -----END PUBLIC KEY-----
        """
}
