import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

struct IPAddressTests {
    @Test(arguments: ["192.0.2.1", "0.0.0.0", "2001:db8::1", "::", "::ffff:192.0.2.1", "fe80::1"])
    func writesWhatItReads(_ text: String) {
        #expect(IPAddress(text)?.description == text)
    }

    @Test(arguments: ["", "1.2.3", "1.2.3.04", "0x1.2.3.4", "1.2.3.4 ", "::1%lo", "[::1]", "1:2:3:4:5:6:7:8:9", "a"])
    func refusesOtherNotations(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [
        ("8.8.8.8", .public), ("100.63.255.255", .public), ("172.32.0.1", .public), ("2606:4700::1111", .public),
        ("127.0.0.1", .loopback), ("127.255.255.255", .loopback), ("::1", .loopback),
        ("0.0.0.0", .unspecified), ("0.1.2.3", .unspecified), ("::", .unspecified),
        ("10.0.0.1", .private), ("172.16.0.1", .private), ("172.31.255.255", .private), ("192.168.1.1", .private),
        ("fc00::1", .private), ("fdff::1", .private), ("fec0::1", .private),
        ("100.64.0.1", .carrierGrade), ("100.127.255.255", .carrierGrade),
        ("169.254.169.254", .linkLocal), ("fe80::1", .linkLocal), ("febf::1", .linkLocal),
        ("192.0.0.8", .reserved), ("192.0.2.1", .reserved), ("198.51.100.1", .reserved), ("203.0.113.1", .reserved),
        ("198.18.0.1", .reserved), ("198.19.255.255", .reserved), ("240.0.0.1", .reserved),
        ("192.88.99.1", .reserved), ("2001:db8::1", .reserved), ("3fff::1", .reserved), ("100::1", .reserved),
        ("224.0.0.1", .multicast), ("239.255.255.255", .multicast), ("ff02::1", .multicast),
        ("255.255.255.255", .broadcast),
    ] as [(String, IPAddress.Class)])
    func knowsWhatAddressesAreFor(_ text: String, _ expected: IPAddress.Class) throws {
        #expect(try #require(IPAddress(text)).class == expected)
    }

    /// 127.0.0.1 and 10.0.0.1 in every way to write an IPv4 address as an IPv6 address.
    @Test(arguments: [
        ("::ffff:127.0.0.1", .loopback), ("::ffff:0:127.0.0.1", .loopback), ("::127.0.0.1", .loopback),
        ("64:ff9b::10.0.0.1", .private), ("64:ff9b:1::10.0.0.1", .private), ("2002:7f00:1::1", .loopback),
        ("2002:a9fe:a9fe::", .linkLocal), ("2001:0:a00:1::", .private),
        // The client's address is inverted: 80ff:fffe is 127.0.0.1.
        ("2001:0:808:808::80ff:fffe", .loopback), ("fe80::5efe:10.0.0.1", .private),
        ("2606:4700::5efe:10.0.0.1", .private), ("2606:4700::200:5efe:169.254.169.254", .linkLocal),
    ] as [(String, IPAddress.Class)])
    func seesThroughEmbeddedAddresses(_ text: String, _ expected: IPAddress.Class) throws {
        #expect(try #require(IPAddress(text)).class == expected)
    }

    /// A connection may lead to the embedded address, and to the one around it.
    @Test(arguments: [
        ("fe80::5efe:10.0.0.1", [.private, .linkLocal]), ("fe80::5efe:8.8.8.8", [.linkLocal]),
        ("fd00::5efe:127.0.0.1", [.loopback, .private]), ("2001:0:a00:1::f7f7:f7f7", [.private, .reserved]),
        ("2001:0:808:808::80ff:fffe", [.loopback, .reserved]), ("64:ff9b:1::127.0.0.1", [.loopback, .private]),
        ("64:ff9b::10.0.0.1", [.private]), ("2002:a00:1::", [.private]), ("10.0.0.1", [.private]), ("8.8.8.8", []),
    ] as [(String, Set<IPAddress.Class>)])
    func judgesEmbeddedAddressesAndTheirRanges(_ text: String, _ expected: Set<IPAddress.Class>) throws {
        let classes = Set(try #require(IPAddress(text)).classes)
        #expect(classes.subtracting([.public, .unspecified]) == expected, "\(classes)")
        // A policy permits an address if it permits all that it is.
        var policy = URLAccessPolicy.publicOnly
        policy.privateExceptions = [.networks]
        let isPermitted = policy.check(try #require(IPAddress(text))) == nil
        #expect(isPermitted == expected.isSubset(of: [.private]), "\(text)")
    }

    /// Outside of 169.254.0.0/16, in private, public and provider ranges.
    @Test(arguments: [
        "fd00:ec2::254", "fd00:ec2::23", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254",
        "fd00:42::42",        "169.254.169.254", "::ffff:100.100.100.200",
    ])
    func metadataServicesAreOnTheLink(_ text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.class == .linkLocal)
        var policy = URLAccessPolicy.publicOnly
        policy.privateExceptions = [.loopback, .networks]
        #expect(policy.check(address) != nil)
        policy.privateExceptions = [.linkLocal]
        #expect(policy.check(address) == nil)
    }

    @Test func publicAddressesStayPublicInsideOthers() throws {
        for text in ["::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::8.8.8.8"] {
            #expect(try #require(IPAddress(text)).class == .public, "\(text)")
        }
    }

    /// Only 2000::/3 is given to hosts so far (IANA, "Internet Protocol Version 6 Address Space").
    @Test(arguments: [
        "::1:0:1", "::8.8.8.8", "1::1", "200::1", "400::1", "800::1", "1000::1", "1fff::1", "64:ff9a::1", "64:ff9b:2::1",
        "100:0:0:1::1", "4000::1", "4000::5efe:8.8.8.8", "6000::1", "8000::1", "a000::1", "c000::1", "e000::1",
        "f000::1", "f800::1", "fe00::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff::1", "5f00::1",
    ])
    func whatIsNotGivenToHostsIsNotPublic(_ text: String) throws {
        #expect(try #require(IPAddress(text)).class == .reserved)
    }

    @Test(arguments: [
        "2000::1", "2001:200::1", "2001:4860:4860::8888", "2400:cb00::1", "2606:4700::1111", "2a00:1450::1", "2c0f:fb50::1",
        "3ffe::1", "1.0.0.1", "9.9.9.9", "11.0.0.1", "100.128.0.1", "126.255.255.255", "128.0.0.1", "169.253.0.1",
        "172.15.255.255", "191.255.0.1", "192.0.1.1", "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.254",
    ])
    func hostsAnywhereArePublic(_ text: String) throws {
        #expect(try #require(IPAddress(text)).class == .public)
    }

    @Test func rangesHoldTheirAddresses() throws {
        let range = try #require(AddressRange("10.1.0.0/16"))
        #expect(range.contains(.v4(0x0A01_FFFF)))
        #expect(!range.contains(.v4(0x0A02_0000)))
        #expect(AddressRange("0.0.0.0/0")?.contains(.v4(.max)) == true)
        #expect(AddressRange("::1")?.contains(.v6(1)) == true)
        #expect(AddressRange("10.0.0.0/33") == nil)
        #expect(AddressRange("10.0.0.0/") == nil)
        #expect(AddressRange("10/8") == nil)
    }
}
