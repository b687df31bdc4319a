// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The credentials of a container's role, which an agent beside it serves: in ECS, in EKS with Pod Identity, on devices with Greengrass.
///
/// `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` is a path at `http://169.254.170.2`, and takes precedence over
/// `AWS_CONTAINER_CREDENTIALS_FULL_URI`. The latter has to be an `https` URL, or lead to this computer, `169.254.170.2`, `169.254.170.23` or
/// `fd00:ec2::23`. What `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` contains, which is read for each request, or else
/// `AWS_CONTAINER_AUTHORIZATION_TOKEN`, is sent in `Authorization`. Redirects are refused, and no proxy is used.
///
/// The credentials are kept, and replaced from five minutes before they expire, once for all that ask; they are used until then if the agent
/// fails. Copies share them.
public struct AWSContainerCredentials: AWSCredentialsProvider {
    private let shared: SharedCredentials

    /// Creates a provider.
    ///
    /// - Parameters:
    ///   - environment: by default that of the process, as it is now.
    ///   - timeout: the longest time of an attempt; 2 seconds by default.
    ///   - attempts: the most attempts to ask, after failed transfers and statuses such as 503; 3 by default.
    ///   - options: the options of transfers, such as the authorities of an `https` agent; a proxy is not used.
    public init(
        environment: [String: String] = ProcessInfo.processInfo.environment, timeout: Duration = .seconds(2), attempts: Int = 3,
        options: TransferOptions = TransferOptions()
    ) {
        let source = Source(environment, timeout, attempts, options)
        shared = SharedCredentials { try await source.credentials() }
    }

    /// Returns the credentials.
    ///
    /// - Throws: ``AWSCredentialsError``: ``AWSCredentialsError/notFound(_:)`` without the variables; `CancellationError`.
    public func credentials() async throws -> AWSCredentials { try await shared.credentials() }

    /// The URL of the agent.
    static func url(in environment: [String: String]) throws(AWSCredentialsError) -> String {
        let (relative, full) = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if let path = environment[relative] {
            guard path.hasBytePrefix("/") else { throw .invalidVariable(relative) }
            return "http://169.254.170.2\(path)"
        }
        guard let url = environment[full] else {
            throw .notFound(["the environment has neither \(relative) nor \(full)"])
        }
        guard let origin = HTTPOrigin(url: url), url.authority?.utf8.contains(UInt8(ascii: "@")) == false else {
            throw .invalidVariable(full)
        }
        let agents = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"]
        guard url.isProtectedURL || origin.scheme == "http" && agents.contains(origin.host) else { throw .forbiddenEndpoint(full) }
        return url
    }

    private struct Source: Sendable {
        private let endpoint: Result<CredentialsEndpoint, AWSCredentialsError>
        private let token: String?
        private let tokenFile: String?

        init(_ environment: [String: String], _ timeout: Duration, _ attempts: Int, _ options: TransferOptions) {
            let environment = environment.filter { !$0.value.isEmpty }
            token = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
            tokenFile = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
            var options = options
            options.proxy = .none
            endpoint = Result { () throws(AWSCredentialsError) in
                CredentialsEndpoint(
                    "the container endpoint", at: try AWSContainerCredentials.url(in: environment), timeout: timeout, attempts: attempts,
                    options: options)
            }
        }

        func credentials() async throws -> AWSCredentials {
            let endpoint = try endpoint.get()
            var headers: HTTPHeaders = [.accept("application/json")]
            if let token = try tokenFile.map({ try AWSTokenFile.read($0) }) ?? token {
                let header = HTTPHeader.authorization(token)
                guard header.isValid else {
                    throw AWSCredentialsError.invalidVariable("AWS_CONTAINER_AUTHORIZATION_TOKEN\(tokenFile == nil ? "" : "_FILE")")
                }
                headers.append(header)
            }
            let response = try await endpoint.send(headers: headers)
            return try CredentialsDocument.credentials(in: response, from: endpoint.place)
        }
    }
}

/// A file with a token, which an agent replaces now and then.
enum AWSTokenFile {
    private static let maximumSize = 64 << 10

    /// Returns the file's text, without blanks and line ends around it.
    ///
    /// - Throws: ``AWSCredentialsError/unreadableFile(_:_:)``, also for a file that is empty, longer than 64 KiB or not UTF-8.
    static func read(_ path: String) throws(AWSCredentialsError) -> String {
        let bytes: Data
        do {
            // A pipe without a writer would block.
            guard let file = Descriptor.open(path, O_RDONLY | O_NONBLOCK) else { throw FileError.reading(path, errno) }
            bytes = try file.read(maximumSize + 1, at: 0)
        } catch {
            let cause = (error as? SystemError).map { FileError.reading(path, $0.code) } ?? error
            throw .unreadableFile(path, FileError.text(cause, of: path))
        }
        let text = bytes.count <= maximumSize ? String(validating: bytes, as: UTF8.self) : nil
        let token = text?.trimmingScalars { $0 == " " || $0 == "\t" || $0 == "\r" || $0 == "\n" } ?? ""
        guard !token.isEmpty else { throw .unreadableFile(path, "the file \"\(path)\" has no token") }
        return String(token)
    }
}

// MARK: - Descriptions

extension AWSContainerCredentials: CustomStringConvertible, RedactedReflectable {
    /// The name of the type; no variables and credentials.
    public var description: String { "AWSContainerCredentials()" }
}
