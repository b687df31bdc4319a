import Testing

@testable import WeatherSDK

#if canImport(CurlewURLSession)
import CurlewTesting
import CurlewURLSession

@Test func `the weather is decoded`() async throws {
    let session = URLSession(mock: .json(Weather(city: "Bergen", celsius: 7)))
    let weather = try await WeatherClient(session: session).weather(in: "Bergen")
    #expect(weather.celsius == 7)
}
#endif
