// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct NumberMapTests {
    @Test("behaves like a dictionary under random operations", arguments: [4, 40, 4_000])
    func model(range: UInt64) {
        var random = SplitMix(state: range)
        var map = NumberMap<Int>()
        var model: [Int: Int] = [:]
        for step in 0..<30_000 {
            let number = Int(random.next() % range)
            let isRemoved = random.next() % 2 == 0
            map[number] = isRemoved ? nil : step
            model[number] = isRemoved ? nil : step
            let other = Int(random.next() % range)
            guard map[other] == model[other], map.count == model.count else {
                Issue.record("\(other) is \(map[other] as Any), should be \(model[other] as Any), step \(step)")
                return
            }
        }
        #expect(map.values.sorted() == model.values.sorted())
        #expect((0..<Int(range)).allSatisfy { map[$0] == model[$0] })
    }

    @Test("all numbers are valid keys", arguments: [Int.min, -1, 0, 1, .max])
    func extremes(number: Int) {
        var map = NumberMap<String>()
        #expect(map[number] == nil)
        map[number] = "first"
        map[number] = "second"
        #expect(map[number] == "second")
        #expect(map.count == 1)
        map[number] = nil
        map[number] = nil
        #expect(map[number] == nil)
        #expect(map.count == 0)
        #expect(map.values.isEmpty)
    }

    @Test("numbers are inserted and removed among many others")
    func window() {
        var map = NumberMap<Int>()
        for number in 0..<10_000 { map[number] = number }
        for number in 10_000..<200_000 {
            map[number] = number
            map[number - 8] = number - 8 < 10_000 ? number - 8 : nil
        }
        #expect(map.count == 10_008)
        #expect((0..<10_000).allSatisfy { map[$0] == $0 })
    }

    @Test("a removed value is released")
    func release() {
        final class Item {}
        var map = NumberMap<Item>()
        weak var item: Item?
        do {
            let new = Item()
            map[1] = new
            item = new
        }
        #expect(item != nil)
        map[1] = nil
        #expect(item == nil)
    }
}
