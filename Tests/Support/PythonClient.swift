// SPDX-License-Identifier: Apache-2.0

/// An HTTP client of Python's, with whose requests and results Curlew's are compared.
public enum PythonClient: String, CaseIterable, Sendable {
    case requests
    case httpx

    /// Whether tests of the clients are to be run.
    public static func areInstalled() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(Servers.python, "-c", "import httpx, requests").finish().status == 0
    }

    /// Defines `session`, `send(method, url, body)` and `Digest` in the same way for both.
    private var beginning: String {
        switch self {
        case .requests:
            """
            import requests
            session, Digest = requests.Session(), requests.auth.HTTPDigestAuth
            session.trust_env = False
            def send(method, url, body=None): return session.request(method, url, data=body, timeout=20)
            """
        case .httpx:
            """
            import httpx
            session, Digest = httpx.Client(trust_env=False, timeout=20), httpx.DigestAuth
            def send(method, url, body=None): return session.request(method, url, content=body)
            """
        }
    }

    /// Runs a script, which has `session`, `send(method, url, body)`, `Digest` and `sys.argv`, and returns the lines of its output.
    public func run(_ script: String, _ arguments: [String]) async throws -> [String] {
        let program = try ChildProcess(Servers.python, ["-c", "import json, sys\n\(beginning)\n\(script)"] + arguments)
        let (status, output) = await program.finish()
        guard status == 0 else { throw TestError("the script of \(self) ended with the status \(status)") }
        return output
    }
}
