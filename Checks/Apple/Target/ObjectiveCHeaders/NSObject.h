// The little of the Objective-C runtime that the sources name.
#pragma once
typedef unsigned long NSUInteger;
#pragma clang assume_nonnull begin
@protocol NSObject
@property(readonly) NSUInteger hash;
- (_Bool)isEqual:(nullable id)object;
@end
__attribute__((objc_root_class))
@interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end
typedef enum __attribute__((enum_extensibility(open))) objc_AssociationPolicy : unsigned long {
    OBJC_ASSOCIATION_ASSIGN = 0,
    OBJC_ASSOCIATION_RETAIN_NONATOMIC = 1,
} objc_AssociationPolicy;
void objc_setAssociatedObject(id object, const void *key, id _Nullable value, objc_AssociationPolicy policy);
id _Nullable objc_getAssociatedObject(id object, const void *key);
#pragma clang assume_nonnull end
