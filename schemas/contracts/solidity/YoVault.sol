// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "./ERC20.sol";
import {ShareVault} from "./ShareVault.sol";

/// A vault that emits the events of YO: each receiver is owed one sum, parts of which are fulfilled or cancelled. 1 % of
/// what leaves is a fee, which requests and their fulfilment still include. For development chains.
contract YoVault is ShareVault {
    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );
    event RedeemRequest(
        address indexed receiver, address indexed owner, uint256 assets, uint256 shares, bool indexed instant
    );
    event RequestFulfilled(address indexed receiver, uint256 shares, uint256 assets);
    event RequestCancelled(address indexed receiver, uint256 shares, uint256 assets);

    mapping(address => uint256) public owedAssets;
    mapping(address => uint256) public owedShares;
    mapping(address => uint256) public paid;

    constructor(string memory name_, string memory symbol_, address asset_) ShareVault(name_, symbol_, asset_, 0) {}

    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        shares = _join(msg.sender, receiver, assets);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    function requestRedeem(uint256 shares, address receiver, address owner, bool now_) external returns (uint256 assets) {
        if (owner != msg.sender) _spendAllowance(owner, msg.sender, shares);
        assets = convertToAssets(shares);
        if (now_) {
            _pay(owner, receiver, owner, shares, assets);
        } else {
            _move(owner, address(this), shares);
            owedAssets[receiver] += assets;
            owedShares[receiver] += shares;
        }
        emit RedeemRequest(receiver, owner, assets, shares, now_);
    }

    function fulfillRedeem(address receiver, uint256 shares, uint256 assets) external onlyManager {
        owedAssets[receiver] -= assets;
        owedShares[receiver] -= shares;
        emit RequestFulfilled(receiver, shares, assets);
        _pay(address(this), receiver, address(this), shares, assets);
    }

    function cancelRedeem(address receiver, uint256 shares, uint256 assets) external onlyManager {
        owedAssets[receiver] -= assets;
        owedShares[receiver] -= shares;
        _move(address(this), receiver, shares);
        emit RequestCancelled(receiver, shares, assets);
    }

    function _pay(address caller, address receiver, address owner, uint256 shares, uint256 assets) private {
        uint256 fee = assets / 100;
        totalAssets -= assets;
        _burn(owner, shares);
        asset.transfer(receiver, assets - fee);
        asset.transfer(manager, fee);
        paid[receiver] += assets - fee;
        emit Withdraw(caller, receiver, owner, assets - fee, shares);
    }
}

/// The gateway of all YO vaults on a development chain, which names the partner.
contract YoGateway {
    event YoGatewayDeposit(
        uint32 indexed partnerId, address indexed yoVault, address indexed sender, address receiver, uint256 assets,
        uint256 shares
    );
    event YoGatewayRedeem(
        uint32 indexed partnerId, address indexed yoVault, address indexed receiver, uint256 shares,
        uint256 assetsOrRequestId, bool instant
    );

    function deposit(YoVault vault, uint256 assets, address receiver, uint32 partner) external {
        IERC20 asset = vault.asset();
        asset.transferFrom(msg.sender, address(this), assets);
        asset.approve(address(vault), assets);
        emit YoGatewayDeposit(partner, address(vault), msg.sender, receiver, assets, vault.deposit(assets, receiver));
    }

    function redeem(YoVault vault, uint256 shares, address receiver, uint32 partner, bool now_) external {
        vault.transferFrom(msg.sender, address(this), shares);
        uint256 assets = vault.requestRedeem(shares, receiver, address(this), now_);
        emit YoGatewayRedeem(partner, address(vault), receiver, shares, now_ ? assets : 0, now_);
    }
}
