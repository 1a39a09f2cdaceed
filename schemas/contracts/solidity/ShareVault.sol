// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20, IERC20} from "./ERC20.sol";

/// The base of the vaults in this folder that emit another protocol's events: an asset, its value, and the right of the
/// deployer to manage it. They are for development chains: the manager can set any value. Shares have `extraDecimals` more
/// decimals than the asset.
abstract contract ShareVault is ERC20 {
    error OnlyManager();

    IERC20 public immutable asset;
    address public immutable manager = msg.sender;
    uint256 public totalAssets;

    /// The shares of the first deposit, for each unit of the asset.
    uint256 private immutable first;

    constructor(string memory name_, string memory symbol_, address asset_, uint8 extraDecimals)
        ERC20(name_, symbol_, IERC20(asset_).decimals() + extraDecimals)
    {
        asset = IERC20(asset_);
        first = 10 ** extraDecimals;
    }

    modifier onlyManager() {
        if (msg.sender != manager) revert OnlyManager();
        _;
    }

    function convertToShares(uint256 assets) public view returns (uint256) {
        return totalSupply == 0 ? assets * first : assets * totalSupply / totalAssets;
    }

    function convertToAssets(uint256 shares) public view returns (uint256) {
        return totalSupply == 0 ? shares / first : shares * totalAssets / totalSupply;
    }

    function _join(address payer, address receiver, uint256 assets) internal returns (uint256 shares) {
        shares = convertToShares(assets);
        totalAssets += assets;
        _mint(receiver, shares);
        asset.transferFrom(payer, address(this), assets);
    }

    function _leave(address holder, address receiver, uint256 shares) internal returns (uint256 assets) {
        assets = convertToAssets(shares);
        totalAssets -= assets;
        _burn(holder, shares);
        asset.transfer(receiver, assets);
    }
}
