import assert from "node:assert/strict"
import { test } from "node:test"
import { kindName } from "./kinds"

test("the text of a kind is never the name of another kind", () => {
  assert.equal(kindName("Deposit"), "Deposit")
  for (const kind of ["DepositAccepted", "WithdrawalRequested", "WithdrawalFunded", "WithdrawalClaimed", "WithdrawalCancelled", "WithdrawalExpired", "NavUpdated", "DepositsSwept", "WithdrawalsSettled"])
    assert.match(kindName(kind), / /, kind)
})
