// Writes the declarations of all events that the pinned packages publish, one file for each preset: run
// `npm ci --ignore-scripts && node extract.mjs`. TestPublishedABI compares the presets with them.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { vaultAbi_v0_6_0 } from "@lagoon-protocol/v0-core";
import { yoGatewayAbi } from "@yo-protocol/core";

const erc4626 = JSON.parse(readFileSync(createRequire(import.meta.url).resolve("@openzeppelin/contracts/build/contracts/ERC4626.json")));

for (const [name, abi] of Object.entries({ "erc4626": erc4626.abi, "lagoon-v0.6": vaultAbi_v0_6_0, "yo": yoGatewayAbi })) {
  const events = abi.filter((item) => item.type === "event").map(({ name, inputs }) =>
    `${name}(${inputs.map((i) => [i.type, i.indexed ? "indexed" : "", i.name].filter(Boolean).join(" ")).join(", ")})`);
  writeFileSync(new URL(`${name}.txt`, import.meta.url), events.sort().join("\n") + "\n");
}
