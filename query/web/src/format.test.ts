import assert from "node:assert/strict"
import { test } from "node:test"
import { ageSeconds, count, difference, duration, exact, group, scaled, short, shortHex, sum, time } from "./format"

test("an amount has all its digits", () => {
  for (const [native, decimals, want] of [
    ["0", 6, "0"],
    ["1", 6, "0.000001"],
    ["1234567890", 6, "1,234.56789"],
    ["1000000", 6, "1"],
    ["-1234567890", 6, "-1,234.56789"],
    ["-1", 2, "-0.01"],
    ["123", 0, "123"],
    ["9007199254740993", 0, "9,007,199,254,740,993"], // one more than the largest integer that a float holds exactly
    ["115792089237316195423570985008687907853269984665640564039457584007913129639935", 18, "115,792,089,237,316,195,423,570,985,008,687,907,853,269,984,665,640,564,039,457.584007913129639935"],
  ] as const) {
    assert.equal(exact(native, decimals), want)
  }
})

test("a short amount is truncated, and never more than the amount", () => {
  for (const [native, decimals, digits, want] of [
    ["1999999", 6, 2, "1.99"],
    ["1000000", 6, 2, "1.00"],
    ["1", 6, 2, "<0.01"],
    ["-1", 6, 2, ">-0.01"],
    ["-1999999", 6, 2, "-1.99"],
    ["0", 6, 2, "0.00"],
    ["12345", 0, 2, "12,345"],
    ["1234567", 1, 2, "123,456.7"],
    ["999999", 6, 0, "<1"],
    ["1049999999999999999", 18, 6, "1.049999"],
  ] as const) {
    assert.equal(short(native, decimals, digits), want)
  }
})

test("sums and differences are exact", () => {
  assert.equal(sum(["9007199254740993", "1"]), "9007199254740994")
  assert.equal(sum([]), "0")
  assert.equal(difference("10", "3"), "-7")
  assert.equal(difference("9007199254740992", "9007199254740993"), "1")
})

test("digits are grouped by three", () => {
  assert.deepEqual(["1", "12", "123", "1234", "-123456", "1234567"].map(group), ["1", "12", "123", "1,234", "-123,456", "1,234,567"])
})

test("the number of a chart", () => {
  assert.equal(scaled("1500000", 6), 1.5)
})

test("times and ages", () => {
  assert.equal(time("2026-03-01T12:00:05.000Z"), "2026-03-01 12:00:05")
  for (const [seconds, want] of [
    [0, "0 s"],
    [59, "59 s"],
    [61, "1 min"],
    [3600, "1 h"],
    [3660, "1 h 1 min"],
    [90000, "1 d 1 h"],
    [86400 + 60, "1 d"],
    [-5, "0 s"],
  ] as const) {
    assert.equal(duration(seconds), want)
  }
  assert.equal(ageSeconds("2026-03-01T12:00:00.000Z", Date.parse("2026-03-01T12:01:00.500Z")), 60)
  assert.equal(ageSeconds("2026-03-01T12:00:00.000Z", 0), 0)
})

test("words", () => {
  assert.equal(shortHex("0x1111111111111111111111111111111111111111"), "0x1111…1111")
  assert.equal(shortHex("0x12"), "0x12")
  assert.equal(count(1, "request"), "1 request")
  assert.equal(count(1200, "request"), "1,200 requests")
})
