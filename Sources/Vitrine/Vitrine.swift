@_exported import VitrineCache
@_exported import VitrineCore
@_exported import VitrineImaging
@_exported import VitrineModels
@_exported import VitrineNetwork
@_exported import VitrineStores
@_exported import VitrineThumbnails
