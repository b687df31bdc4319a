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
