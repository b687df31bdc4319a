import Foundation

#if canImport(CurlewURLSession)
import CurlewURLSession
#elseif canImport(FoundationNetworking)
import FoundationNetworking
#endif

public struct Weather: Codable, Sendable {
    public let city: String
    public let celsius: Double
}

public struct WeatherClient: Sendable {
    let session: URLSession

    public init(session: URLSession = .shared) { self.session = session }

    public func weather(in city: String) async throws -> Weather {
        let (data, response) = try await session.data(from: try Self.url("now", city))
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return try JSONDecoder().decode(Weather.self, from: data)
    }

    static func url(_ path: String, _ city: String) throws -> URL {
        var components = URLComponents(string: "https://weather.example.org/\(path)")
        components?.queryItems = [URLQueryItem(name: "city", value: city)]
        guard let url = components?.url else { throw URLError(.badURL) }
        return url
    }
}

extension WeatherClient {
    /// Passes each line of the alerts on as it arrives.
    public func alerts(in city: String, _ receive: (String) -> Void) async throws {
        let (bytes, _) = try await session.bytes(from: try Self.url("alerts", city))
        for try await line in bytes.lines { receive(line) }
    }
}

#if canImport(CurlewURLSession)
import CurlewCore

extension WeatherClient {
    /// A client for a service on Linux: with a limit of time, retries, and no way to hosts of the internal network.
    public static func forServices() -> WeatherClient {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.totalTimeout = .seconds(10)
        configuration.curlew.addresses = .publicOnly
        let session = URLSession(configuration: configuration)
        session.curlew.retrier = RetryPolicy()
        return WeatherClient(session: session)
    }
}
#endif
