// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

@testable import CurlewSigning

/// The services that give credentials.
enum CredentialsService: CaseIterable, Sendable {
    case container, instance, webIdentity

    /// A provider that asks the service at a server, as the user of a secret, which is in a file of a directory.
    func provider(
        at server: String, user: String = "user", in directory: TemporaryDirectory, timeout: Duration = .seconds(30), attempts: Int = 1
    ) throws -> any AWSCredentialsProvider {
        let file = try directory.write(Data("\(user)\n".utf8), to: user)
        switch self {
        case .container:
            let variables = [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "\(server)/creds/\(user)", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file.path,
            ]
            return AWSContainerCredentials(environment: variables, timeout: timeout, attempts: attempts)
        case .instance:
            return AWSInstanceCredentials(
                environment: ["AWS_EC2_METADATA_SERVICE_ENDPOINT": "\(server)/\(user)"], timeout: timeout, attempts: attempts)
        case .webIdentity:
            let variables = [
                "AWS_ENDPOINT_URL_STS": server, "AWS_WEB_IDENTITY_TOKEN_FILE": file.path, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r&<",
                "AWS_ROLE_SESSION_NAME": "test",
            ]
            return AWSWebIdentityCredentials(environment: variables, timeout: timeout, attempts: attempts)
        }
    }

    /// A server of the service, which answers the last request for credentials by a closure, with the user.
    func server(_ answer: @escaping @Sendable (String, ServerConnection) throws -> ServerResponse) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            if request.path.hasSuffix("/latest/api/token") {
                let isRight = request.method == "PUT" && request.header("X-aws-ec2-metadata-token-ttl-seconds") == "60"
                return isRight ? .ok("token of \(request.path)") : .status(400)
            }
            guard let user = user(of: request) else { return .status(400) }
            if request.path.hasSuffix("/security-credentials/") { return .ok("role_1\n") }
            return try answer(user, connection)
        }
    }

    /// The user who is entitled to a request; `nil` for a request that is not right.
    private func user(of request: ServerRequest) -> String? {
        let first = request.path.split(separator: "/").first.map(String.init)
        switch self {
        case .container:
            let user = request.header("Authorization")
            return request.method == "GET" && request.path == "/creds/\(user ?? "")" ? user : nil
        case .instance:
            let isRight = request.header("X-aws-ec2-metadata-token") == "token of /\(first ?? "")/latest/api/token"
            let isKnown = ["", "role_1"].contains { request.path.hasSuffix("/latest/meta-data/iam/security-credentials/\($0)") }
            return isRight && isKnown && request.method == "GET" ? first : nil
        case .webIdentity:
            let form = URLComponents(string: "?\(String(decoding: request.body, as: UTF8.self))")?.queryItems ?? []
            let items = Dictionary(uniqueKeysWithValues: form.map { ($0.name, $0.value ?? "") })
            let expected = [
                "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": "arn:aws:iam::1:role/r&<",
                "RoleSessionName": "test",
            ]
            guard request.method == "POST", request.path == "/", items.merging(expected, uniquingKeysWith: { $1 }) == items else {
                return nil
            }
            return items["WebIdentityToken"]
        }
    }

    /// The number of requests by which a server is asked for credentials once.
    var requestCount: Int { self == .instance ? 3 : 1 }

    /// What the service answers with credentials.
    func answer(_ credentials: AWSCredentials) -> ServerResponse {
        let expiration = (credentials.expiration ?? .distantFuture).formatted(.iso8601)
        guard self == .webIdentity else {
            let document = [
                "AccessKeyId": credentials.accessKeyID, "SecretAccessKey": credentials.secretAccessKey,
                "Token": credentials.sessionToken ?? "", "Expiration": expiration,
            ]
            let code = self == .instance ? ["Code": "Success", "Type": "AWS-HMAC"] : ["RoleArn": "arn:aws:iam::1:role/r"]
            return (try? .json(document.merging(code) { $1 })) ?? .status(500)
        }
        return .ok(
            """
            <?xml version="1.0"?>
            <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
            <SubjectFromWebIdentityToken>s&amp;lt;</SubjectFromWebIdentityToken><Empty/><Credentials>
            <SessionToken>\(credentials.sessionToken ?? "")</SessionToken><SecretAccessKey>\(credentials.secretAccessKey)</SecretAccessKey>
            <Expiration>\(expiration)</Expiration><AccessKeyId>\(credentials.accessKeyID)</AccessKeyId></Credentials>
            </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>
            """, type: "text/xml")
    }
}

extension AWSCredentials {
    /// Credentials that belong to a user.
    static func temporary(of user: String, expiresIn seconds: TimeInterval = 3600) -> AWSCredentials {
        let time = (Date().timeIntervalSince1970 + seconds).rounded()
        return AWSCredentials(
            accessKeyID: "AKID\(user)", secretAccessKey: "key+of/\(user)=", sessionToken: "session of \(user)",
            expiration: Date(timeIntervalSince1970: time))
    }
}

/// Why a provider has no credentials; `nil` if it has.
func failure(of provider: any AWSCredentialsProvider) async -> AWSCredentialsError? {
    do {
        _ = try await provider.credentials()
        return nil
    } catch {
        return error as? AWSCredentialsError
    }
}
