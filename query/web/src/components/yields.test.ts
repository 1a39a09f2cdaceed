import assert from "node:assert/strict"
import { test } from "node:test"
import { percentText } from "./yields"

test("a percentage is rounded down, even below zero", () => {
  for (const [percent, text] of [
    ["1.239999", "1.23"], ["-0.105171", "-0.11"], ["-0.110000", "-0.11"], ["0.000000", "0.00"], ["0.000001", "<0.01"], ["-0.000001", "-0.01"], ["1234.500000", "1,234.50"], ["-33.110368", "-33.12"],
  ]) assert.equal(percentText(percent!), `${text}\u2009%`)
})
