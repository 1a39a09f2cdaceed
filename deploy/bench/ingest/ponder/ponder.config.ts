import { createConfig } from "ponder";
import { abi } from "./abi";

// The benchmark passes what differs from run to run in environment variables.
export default createConfig({
  database: { kind: "postgres", connectionString: process.env.DATABASE_URL },
  chains: { bench: { id: 31337, rpc: process.env.BENCH_RPC } },
  contracts: {
    Vault: {
      chain: "bench",
      abi,
      address: process.env.BENCH_VAULT as `0x${string}`,
      startBlock: Number(process.env.BENCH_START),
      endBlock: Number(process.env.BENCH_END),
    },
  },
});
